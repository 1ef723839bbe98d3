"""Giving partitions other replicas, as `lamina topics reassign` and `lamina brokers` do it.

- `plan_file`: Kafka's JSON. `showing`: a plan and what came of it, for a person and for a program.
- `execution`: a plan is begun, and what belongs to it afterwards. `following`: waiting until it is complete.
- `carrying_out`: a plan of Lamina's own, from the review to the end, with the options of the commands that make one.

Must not know how a plan is made.
"""
