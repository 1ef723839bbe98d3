"""Which replicas partitions should have, and who should lead them: plans that an operator reviews and has executed.

- `moves`: what a plan changes. `throttled_replicas`: which replicas a throttle has to name while it is executed.
- `spread`: where replicas are while a plan is made. `levelling`: evening out, whatever is counted.
- `replicas`, `leaders`: evening out replicas and leaders. `rebalance`: whole plans, made of these.
- `copying`: how far an executed plan is, in bytes and time.

Pure: what a cluster has comes in, what it should have comes out. Must not know how a cluster is asked, nor how a plan
is shown.
"""
