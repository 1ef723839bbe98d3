"""The rows over TLS: warmed up, with the same certificate and settings on both sides, and only with what was agreed."""

from pathlib import Path
from typing import Any

import pytest

from bench import tls_trials
from bench.amounts import QUICK
from bench.small_requests import WrongAnswer
from bench.subjects import KAFKA, LAMINA, SETTINGS
from bench.tls import BENCH, WHOLE
from bench.tls_subjects import TlsKafka, TlsLamina, client_properties, tls_address, tls_broker, tls_subjects
from bench.tls_trials import AGREED, batches_trial, check
from lamina.settings.properties import load


def test_rows_are_told_apart_by_name_and_all_are_warmed_up(tmp_path: Path) -> None:
    trials = tls_trials.tls_trials(WHOLE)
    names = [trial.name for trial in trials]
    assert len(set(names)) == len(names)
    assert names == [trial.name for trial in tls_trials.tls_trials(QUICK)]
    assert {trial.warm_up_seconds for trial in trials} == {WHOLE.warm_up_seconds}
    assert {name for trial in trials for name in trial.subjects.values()} <= tls_subjects(tmp_path).keys()


def test_both_brokers_have_the_same_settings_but_for_their_ports(tmp_path: Path) -> None:
    subjects = tls_subjects(tmp_path)
    kafka, lamina = subjects[KAFKA], subjects[LAMINA]
    assert isinstance(kafka, TlsKafka)
    assert isinstance(lamina, TlsLamina)
    given = load((kafka.root / "server.properties").read_bytes())
    words = lamina._command
    sets = dict(words[at + 1].split("=", 1) for at, word in enumerate(words) if word == "--set")
    both = {*SETTINGS, "ssl.keystore.type", "ssl.keystore.location"}
    assert {name: given[name] for name in both} == {name: sets[name] for name in both}
    assert [name for name in sets if name not in both and not name.startswith(("lamina.", "listeners"))] == [
        "advertised.listeners"
    ]
    for broker, settings in ((kafka, given), (lamina, sets)):
        host, port = tls_address(broker)
        assert f"SSL://{host}:{port}" in settings["listeners"]
        assert f"PLAINTEXT://{broker.bootstrap}" in settings["listeners"]
    assert client_properties(kafka) == client_properties(lamina)
    assert (tmp_path / "broker.pem").stat().st_mode & 0o777 == 0o600


def test_what_was_agreed_on_has_to_be_what_the_foot_tells(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert AGREED in " ".join(BENCH.notes)
    assert [name for name, value in SETTINGS.items() if f"{name}={value}" not in " ".join(BENCH.notes)] == []
    lamina = tls_broker(tls_subjects(tmp_path)[LAMINA])
    for _ in range(2):
        check(lamina, "a client", f"{AGREED} X25519")
    assert capsys.readouterr().err == f"a client and Lamina agreed on {AGREED} X25519\n"
    with pytest.raises(WrongAnswer, match="not on"):
        check(lamina, "a client", "TLSv1.2 TLS_AES_256_GCM_SHA384")


def test_batches_go_over_tls_and_topics_are_made_in_the_plain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broker = tls_broker(tls_subjects(tmp_path)[LAMINA])
    called: list[tuple[str, str, Any]] = []
    for name in ("create_topic", "delete_topic", "produce_seconds", "consume_seconds"):

        def note(bootstrap: str, topic: str, *amounts: Any, name: str = name, **more: Any) -> float:
            called.append((name, bootstrap, more.get("security", amounts[-1] if amounts else None)))
            return 1.0

        monkeypatch.setattr(tls_trials, name, note)
    monkeypatch.setattr(tls_trials, "touch_memory", lambda size: None)
    monkeypatch.setattr(tls_trials, "cpu_seconds", lambda *_: 0.0)
    monkeypatch.setattr(tls_trials, "check_librdkafka", lambda subject: None)
    trial = batches_trial(1_000, WHOLE)
    assert len(trial.run(broker, "topic")) == len(trial.figures)
    host, port = tls_address(broker)
    security = client_properties(broker)
    assert called == [
        ("create_topic", broker.bootstrap, None),
        ("produce_seconds", f"{host}:{port}", security),
        ("consume_seconds", f"{host}:{port}", security),
        ("delete_topic", broker.bootstrap, None),
    ]
