"""What is said of a backup of a cluster."""

from lamina.cli.cluster.backup import conclusion
from lamina.log.backup.manifest import ClusterFacts, Manifest
from lamina.offline.cluster_backup import ClusterBackup

MANIFEST = Manifest("0", "a-cluster", -1, 0, 1, False, -1, [], [], {}, ClusterFacts(1, ()))


def test_only_a_backup_that_lacks_nothing_is_called_complete() -> None:
    assert conclusion(ClusterBackup("/backup", MANIFEST, [], {})) == "Backup complete: /backup"
    lacking = ClusterBackup("/backup", MANIFEST, [], {"orders-0": "it has no leader"})
    assert conclusion(lacking) == "Backup made without 1 partition: /backup"
