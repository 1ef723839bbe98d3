# Everything runs in .venv, which `make venv` builds from requirements.lock with nothing but Python 3.11+ and pip.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest
# More workers than cores, for many tests wait for a client or a broker. A worker is given whole files, in the order of
# tests/conftest.py; where a few files have nearly all of the work, who is done takes tests from the others.
WORKERS ?= $(shell echo $$(( 2 * $$(getconf _NPROCESSORS_ONLN) )))
BY_FILE := -n $(WORKERS) --dist loadfile --no-loadscope-reorder
BY_TEST := -n $(WORKERS) --dist worksteal

.PHONY: venv serve test test-repeat all-checks check format docs lock bench bench-acls bench-log bench-validate bench-broker bench-turns bench-partitions bench-kafka bench-tls bench-cluster bench-revisions bench-cleaner bench-spark bench-tables soak-cleaner soak-cluster faults faults-cluster simulate planted fuzz peers peers-cleaner peers-files peers-spark alerts mutants fixture schemas clean

venv: $(VENV)/.ready

$(VENV)/.ready: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Lamina needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12 venv")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

# ARGS="--data-dir DIR --listen HOST:PORT" for options of `lamina serve`.
serve: venv
	@$(BIN)/lamina serve $(ARGS)

# Everything that needs neither a Kafka nor a Spark cluster; about four and a half minutes on two quiet cores.
test: venv
	$(PYTEST) $(BY_FILE) -m "not kafka and not spark and not long and not faults_cluster"

# `make test` N times, the last BUSY of them beside a process that keeps a core busy; prints a tally.
N ?= 10
BUSY ?= 3

test-repeat: venv
	@$(BIN)/python -m tests.repeat --runs $(N) --busy $(BUSY)

# Every target that checks something, one after another, in short forms; prints a table. ARGS="TARGET..." for some.
all-checks: venv
	@$(BIN)/python -m tests.all_checks $(ARGS)

# What is too long for `make test`: ten times as many power cuts and random lives of a log, property tests with examples
# that nobody saw before (one that fails comes first in the next run, and prints how to repeat it), many transactions on
# one id, groups of many clients, and the rarer failures of three real brokers; about fifteen minutes.
STORIES ?= 300
TRANSACTIONS ?= 40000

faults: venv
	LAMINA_STORIES=$(STORIES) LAMINA_TRANSACTIONS=$(TRANSACTIONS) $(PYTEST) $(BY_TEST) --timeout 1800 \
		--hypothesis-profile faults -m "(random or hypothesis or long) and not kafka and not spark and not faults_cluster"

# Three real brokers and a ZooKeeper behind a proxy that cuts and delays their links, RUNS times: kills, pauses, partitions,
# disks in trouble, cleaning meanwhile; what clients saw is checked. Histories and logs are kept in build/faults-cluster. Needs
# Java 17+ and Maven; for disks in trouble root's right to mount, and mkfs.ext4. Each load goes on until ACKED records are
# acknowledged, the loop of kills and cuts under compaction for LOOP_SECONDS; about twelve minutes.
RUNS ?= 1
ACKED ?= 20000
LOOP_SECONDS ?= 300

faults-cluster: venv
	@for run in $$(seq $(RUNS)); do LAMINA_FAULT_ACKED=$(ACKED) LAMINA_FAULT_LOOP_SECONDS=$(LOOP_SECONDS) \
		$(PYTEST) -m faults_cluster tests/cluster/faults || exit 1; done

# Lives SEEDS simulated worlds with single brokers and as many with a cluster: kills, power cuts, pauses, partitions, wrong
# clocks, ZooKeeper away, while replicas move, settings change and brokers are upgraded. Prints the story of the first that fails, and how to see it again. About six minutes on two cores.
SEEDS ?= 2000
WORLDS = $(BIN)/python -m tests.simulation --seeds 0-$$(( $(SEEDS) - 1 )) --processes $$(getconf _NPROCESSORS_ONLN)

simulate: venv
	$(WORLDS)
	$(WORLDS) --cluster

# Plants the classic bugs of replication one by one, and shows the simulated world that finds each.
# ARGS="--search" looks for the first seeds again; ARGS="R82 R90" for some of them.
planted: venv
	$(BIN)/python -m tests.simulation.planted $(ARGS)

# Fuzzes what reads other people's bytes: FUZZ_SECONDS for each target, two at a time; fuzz/README.md says more.
# ARGS="TARGET..." for some of them. The fuzzer is fetched into build/; it has wheels for Linux x86-64 only.
FUZZ_SECONDS ?= 20

fuzz: venv build/atheris/.ready
	PYTHONPATH=$(CURDIR)/build/atheris $(BIN)/python -m fuzz --seconds $(FUZZ_SECONDS) $(ARGS)

build/atheris/.ready: fuzz/requirements.lock | venv
	@rm -rf $(@D)
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: --target $(@D) -r $< || { echo "make fuzz needs atheris, which has wheels for CPython 3.11 to 3.14 on Linux x86-64 only; make test runs the fuzzers' corpus everywhere." >&2; exit 1; }
	@touch $@

check: venv
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: venv
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Rewrites what is generated from code; a test fails when it is stale.
docs: venv
	$(BIN)/python -m lamina.settings.document > docs/settings.md
	$(BIN)/python -m lamina.broker.metrics.document > docs/metrics.md
	$(BIN)/python docs/pictures/draw.py

# Makes the table of Kafka's messages again from kio's schemas; a test fails when it is stale.
schemas: venv
	@mkdir -p build
	$(BIN)/python -m schemas > build/message_table.py
	mv build/message_table.py src/lamina/wire/message_table.py

# Pins everything again; needs uv on the PATH.
lock:
	uv pip compile pyproject.toml --extra cluster --extra registry --extra security --extra spark --group dev --universal --python-version 3.11 --generate-hashes --no-annotate --custom-compile-command "make lock" --quiet -o requirements.lock

bench: bench-log bench-validate

bench-log: venv
	$(BIN)/python -m bench.log

bench-validate: venv
	$(BIN)/python -m bench.validate

# One look at 10,000 access rules: a first one and a repeated one; then how soon a rule holds on every broker of three.
# Needs Java 17+.
bench-acls: venv
	$(BIN)/python -m bench.acls
	$(BIN)/python -m bench.acl_delay

# Lamina's broker by itself: the longest callbacks of its loop, and the memory of groups; about two minutes.
# ARGS="--profile ROW" shows where its time goes in a row of bench-kafka.
bench-broker: venv
	$(BIN)/python -m bench.broker $(ARGS)

# The longest turn of a broker's loop while one request has 10,000 entries, for every API that takes a list; about six
# minutes, with some 20,000 open files. ARGS="--entries 1000", "--dir DIR", "--json".
bench-turns: venv
	$(BIN)/python -m bench.turns $(ARGS)

# A cluster of three brokers with 2,000 partitions: how long changes, faults and starts take, what idling costs, and the
# longest callbacks of the loops; about four minutes. Needs Java 17+. ARGS="--quick" for few partitions, "--json".
bench-partitions: venv
	$(BIN)/python -m bench.partitions $(ARGS)

# Beside a real Kafka, in 25 to 30 minutes, on a machine that does nothing else, with 10 GB of free disk and of free
# memory. ARGS="--quick" for a little of everything in a few minutes, "--only ROW", "--dir DIR" to choose the disk. Needs
# Java 17+, Maven and a C compiler; fetches Kafka itself. Writes every round to docs/bench-kafka.json and draws
# docs/bench-kafka.png, both to be committed; in build/ what is not a whole run.
bench-kafka: venv
	$(BIN)/python -m bench.kafka $(ARGS)

# The same over TLS, in ten minutes, with 10 GB of free disk and of free memory. Needs OpenSSL's headers (libssl-dev) too;
# ARGS as for bench-kafka. Writes docs/bench-tls.json and draws docs/bench-tls.png.
bench-tls: venv
	$(BIN)/python -m bench.tls $(ARGS)

# This checkout beside another revision: the rows of bench-kafka with BEFORE=REVISION in Kafka's place, in about 25 minutes,
# on a machine that does nothing else. ARGS as for bench-kafka. Writes to build/. Needs a C compiler.
bench-revisions: venv
	$(BIN)/python -m bench.revisions "$(BEFORE)" $(ARGS)

# Three brokers and a ZooKeeper beside three brokers of a real Kafka, in 25 to 30 minutes, on a machine that does nothing
# else, with 15 GB of free disk and 10 GB of free memory. Needs what bench-kafka needs; ARGS as for that. Writes
# docs/bench-cluster.json and draws docs/bench-cluster.png.
bench-cluster: venv
	$(BIN)/python -m bench.cluster $(ARGS)

# The cleaner beside that of a real Kafka, as it is by default and tuned, in about 25 minutes, on a machine that does
# nothing else, with 10 GB of free disk and of free memory. ARGS as for bench-kafka. Writes docs/bench-cleaner.json and
# draws docs/bench-cleaner.png.
bench-cleaner: venv
	$(BIN)/python -m bench.cleaner $(ARGS)

# Topics in Spark: our source and sink beside Spark's own, of Spark 3.5.1 and the newest that can be had in the same Spark as
# ours, as it is and tuned, from Lamina and from a real Kafka, in at most twenty minutes on a machine that does nothing else,
# with 8 GB of free disk and 12 GB of free memory. Needs Java 17+, pip and Maven; fetches Kafka, that Spark and those sources
# itself. ARGS as for bench-kafka. Writes docs/bench-spark.json and draws docs/bench-spark.png.
bench-spark: venv
	$(BIN)/python -m bench.spark $(ARGS)

# Puts the tables of bench-kafka, bench-tls, bench-cluster, bench-cleaner and bench-spark in their places in README.md and docs/, from
# docs/bench-*.json; a test fails when one is stale.
bench-tables: venv
	@$(BIN)/python -m bench.published

# The cleaner with 100 million keys, and with a log of 20 GB: exactly the right records, within the memory that
# docs/compaction.md states. Up to half an hour, with 42 GB of free disk (ARGS="--dir DIR"); needs no Kafka.
# ARGS="--keys 2000000 --gigabytes 1" for a try, "--only many-keys" or "--only large-log", "--json".
soak-cleaner: venv
	$(BIN)/python -m bench.large_logs $(ARGS)

# Three brokers with 2,000 partitions and 200 groups, compaction on, restarted one by one under load, twice: nothing is lost,
# nobody is told an error that clients do not retry; memory and loop lag are stated. At most ten minutes; needs Java 17+
# for ZooKeeper. ARGS="--quick" for few partitions in a minute, "--dir DIR", "--json".
soak-cluster: venv
	$(BIN)/python -m bench.rolling_restarts $(ARGS)

# Other people's clients and tools against a Lamina broker and against three, and all of peers-files; compat/README.md
# says what works.
# Needs Java 17+, Maven, Go 1.26+ and kcat (Debian: apt-get install kcat); fetches the rest itself; about twelve minutes.
# ARGS="--one-of-each" for the first case of each test, ARGS="-k logins" for some of them.
peers: venv
	$(PYTEST) -m kafka tests/peers $(ARGS)

# Real Apache Kafka reads what Lamina wrote, and the other way round. Needs Java 17+ and Maven; fetches Kafka itself.
peers-files: venv
	$(PYTEST) -m kafka tests/peers/test_files.py tests/peers/test_recovery.py

# Kafka's own cleaner and Lamina's clean copies of the same logs, LOGS of them random; about ten minutes.
LOGS ?= 200

peers-cleaner: venv
	LAMINA_CLEANED_LOGS=$(LOGS) $(PYTEST) -m kafka tests/peers/test_cleaner.py

# The cleaner on a real Spark cluster (a standalone master and two workers), and what is left when parts of Spark, or the
# broker, are killed in the middle of a pass; topics of every kind in Spark's DataFrames, by format("lamina"), beside Spark's
# own source; the examples of docs/spark.md and docs/spark-writing.md; values that Confluent's serializers wrote, with a real
# schema registry; and what is in a topic when a query that writes it is killed KILLS times; topics over Spark Connect; the
# examples of docs/arrow.md with pandas, Polars and DuckDB. Needs Java 17+ and Maven; about sixteen minutes. These libraries, and
# what a client of Spark Connect needs, are fetched into build/; the registry and the serializers once, into ~/.cache/lamina.
# ARGS as for peers.
KILLS ?= 20

peers-spark: venv build/dataframes/.ready
	LAMINA_SINK_KILLS=$(KILLS) $(PYTEST) -m spark tests/pipeline tests/pyspark_lamina tests/arrow $(ARGS)

build/dataframes/.ready: tests/arrow/dataframes.lock | venv
	@rm -rf $(@D)
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --no-deps --only-binary :all: --target $(@D) -r $<
	@touch $@

# Prometheus's own tool reads packaging/alerts.yml and shows that each alert fires. Takes promtool from the path, or from
# Debian's package, without installing it.
PROMTOOL ?= $(or $(shell command -v promtool),build/promtool)

alerts: venv $(PROMTOOL)
	PROMTOOL=$(PROMTOOL) $(PYTEST) tests/packaging/test_alerts.py

build/promtool:
	@mkdir -p build/prometheus
	cd build/prometheus && apt-get download prometheus && dpkg-deb -x prometheus_*.deb .
	mv build/prometheus/usr/bin/promtool $@ && rm -r build/prometheus

# Breaks the rules of compaction one by one and shows that tests of every path notice; about half an hour.
# ARGS="WORD..." for those in whose line a word is.
mutants: venv
	$(BIN)/python -m tests.compaction.mutants $(ARGS)

# Makes the committed data directories of a real Kafka again; only needed to change what they hold.
fixture: venv
	$(BIN)/python -m tests.fixtures.make_kafka_data

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis build dist
