# Everything sets itself up in a local virtual environment; `make demo` and `make test` need only Python 3.11+ and make.
# Each target installs what it needs and no more, from the pinned lists in requirements/.
PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin
PIP     = $(BIN)/python -m pip install --quiet --disable-pip-version-check
RUNTIME = $(VENV)/.runtime
TEST    = $(VENV)/.test
SYSTEM  = $(VENV)/.system
PEERS   = $(VENV)/.peers
LINT    = $(VENV)/.lint
DOCS    = $(VENV)/.docs

.PHONY: demo console demo-nsl-kdd test test-system test-peers test-docs test-long mutants check docs format bench captures models \
  console-bench console-pictures search-bench growth cluster-bench quiet soak reproduce clustering coreference ranking \
  multilabel site structured smoke bare lock clean

# The package itself comes without its dependencies: pip takes no checksums together with an editable install.
$(RUNTIME): requirements/runtime.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "netclust needs Python 3.11 or newer: make PYTHON=/path/to/python3.11 ..."; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) --require-hashes -r requirements/runtime.txt
	$(PIP) --no-deps -e .
	@echo "compiling kernels for this machine, once (half a minute)"
	@$(BIN)/python -m netclust.kernels.prebuilt || echo "not compiled ahead: each kernel is compiled when it is first used"
	@touch $@

$(VENV)/.%: requirements/%.txt $(RUNTIME)
	$(PIP) --require-hashes -r $<
	@touch $@

demo: $(RUNTIME)
	@BIN=$(BIN) sh examples/demo.sh

# The simulated day in a browser, until stopped; its address is printed.
console: $(RUNTIME)
	@BIN=$(BIN) sh examples/console.sh

demo-nsl-kdd: $(RUNTIME)
	@BIN=$(BIN) sh examples/demo-nsl-kdd.sh

# Files of tests are run by one process each: many start daemons of their own. Some wait, so there is one process more
# than cores. CONTRIBUTING.md has a table of the tiers. ARGS goes to pytest.
PYTEST = $(BIN)/python -m pytest -n $$(( $$($(BIN)/python -c 'import os; print(len(os.sched_getaffinity(0)))') + 1 )) --dist loadfile

# What proves the product, in about five minutes.
test: $(TEST)
	$(PYTEST) -m 'story or not (system or peers or docs or long)' $(ARGS)

# Daemons, faults, kills, brokers, browsers, namespaces.
test-system: $(SYSTEM)
	$(PYTEST) -m 'system and not long' $(ARGS) tests

# Beside other tools, and on the shared corpora.
test-peers: $(PEERS)
	$(PYTEST) -m 'peers and not long' $(ARGS) tests

# Every command and snippet of the guides and examples.
test-docs: $(PEERS) $(DOCS)
	$(PYTEST) -m 'docs and not long' $(ARGS) tests

# Small changes of the code that no quick test notices (about an hour); docs/testing.md says how.
mutants: $(TEST)
	$(BIN)/python benchmarks/mutants.py

test-long: $(PEERS) $(SYSTEM)
	NETCLUST_LONG=1 $(BIN)/python -m pytest $(ARGS)
	$(BIN)/python benchmarks/replicate.py

check: $(LINT)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The documentation, in site/ ; fails on a broken link. `.venv/bin/mkdocs serve` shows it while you write.
docs: $(DOCS)
	$(BIN)/python -m netclust.models.experiments.detection.engine_plots docs/pictures
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir site

format: $(LINT)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(PEERS)
	$(BIN)/python benchmarks/sweep.py
	$(BIN)/python benchmarks/vs_river.py
	$(BIN)/python benchmarks/vs_sklearn.py
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/explanations.py
	$(BIN)/python benchmarks/vs_nfstream.py
	$(BIN)/python benchmarks/capture_memory.py

# Uses of public test sets are noted in the repository.
captures growth reproduce clustering ranking multilabel: export NETCLUST_LOOKS = $(CURDIR)/benchmarks/test-looks.jsonl

# Attacks in the shared captures, beside three rivals, for both schemas (some 15 minutes).
PCAP = $(or $(NETCLUST_DATA),../shared/datasets)/pcap
captures: $(PEERS)
	$(BIN)/netclust evaluate capture '$(PCAP)' --labels benchmarks/pcap-labels.csv --schema flow --schema kdd \
	  --json benchmarks/results/captures.json --picture docs/pictures/captures.svg

# The shipped models at real sites, beside their rivals: other hosts, halves of days, poisoned warm-ups, alerts (10 minutes).
site: $(PEERS)
	$(BIN)/python benchmarks/site.py

# The models that come with netclust, made anew (some minutes; needs NSL-KDD for the weights of `kdd`).
models: $(PEERS)
	SOURCE_DATE_EPOCH=1704067200 $(BIN)/python -m netclust.models.network.make_shipped netclust/shipped \
	  --data '$(or $(NETCLUST_DATA),../shared/datasets)'

# What the console costs and how it feels at 20,000 records a second (a quarter of an hour), and its pictures.
console-bench: $(SYSTEM)
	$(BIN)/python benchmarks/console.py
console-pictures: $(SYSTEM)
	$(BIN)/python benchmarks/console_pictures.py

# What a link costs at windows from 100 to a million; accuracy at long windows, with few labels, with representatives.
search-bench: $(PEERS)
	$(BIN)/python benchmarks/search.py
growth: $(PEERS)
	$(BIN)/netclust reproduce windows --train '$(NSL_KDD)/KDDTrain+.txt.xz' --test '$(NSL_KDD)/KDDTest+.txt.xz' \
	  --json benchmarks/results/windows.json --plot docs/pictures/growth-windows.svg
	$(BIN)/netclust reproduce label-economy --train '$(NSL_KDD)/KDDTrain+.txt.xz' --test '$(NSL_KDD)/KDDTest+.txt.xz' \
	  --json benchmarks/results/label-economy.json --plot docs/pictures/growth-label-economy.svg
	$(BIN)/python benchmarks/representatives.py

# The distributed engine with 1, 2 and 4 workers beside the detector in one process (some 5 minutes, needs redis-server).
cluster-bench: $(PEERS)
	$(BIN)/python benchmarks/cluster_scaling.py

# Alerts on benign captures, attack captures and a simulated week; and an hour at twice the rated input.
quiet: $(PEERS)
	$(BIN)/python benchmarks/quiet.py
soak: $(PEERS)
	$(BIN)/python benchmarks/soak.py

# Table 4.1 beside ours, with every peer (half an hour), and the pictures of docs/detection.md.
NSL_KDD = $(or $(NETCLUST_DATA),../shared/datasets)/nsl-kdd
reproduce: $(PEERS)
	$(BIN)/netclust reproduce table-4.1 --train '$(NSL_KDD)/KDDTrain+.txt.xz' --test '$(NSL_KDD)/KDDTest+.txt.xz' \
	  --test '$(NSL_KDD)/KDDTest-21.txt.xz' --peers all --json benchmarks/results/table-4.1.json --plots docs/pictures

# The published experiments of supervised clustering beside ours, with the shared corpora (about an hour).
SHARED = $(or $(NETCLUST_DATA),../shared/datasets)
clustering: $(PEERS)
	$(BIN)/netclust reproduce correlation --cora '$(SHARED)/cora-citations/cora.csv' \
	  --newsgroups '$(SHARED)/20newsgroups/20news-bydate-all.tar.xz' --json benchmarks/results/correlation.json
	$(BIN)/netclust reproduce kmeans --json benchmarks/results/kmeans.json
	$(BIN)/netclust reproduce irrelevant-features --json benchmarks/results/irrelevant-features.json \
	  --plot docs/pictures/irrelevant-features.svg
	$(BIN)/netclust reproduce clustering-scaling --json benchmarks/results/clustering-scaling.json \
	  --plot docs/pictures/clustering-scaling.svg
	$(BIN)/python benchmarks/vs_chszlablib.py
	$(BIN)/python benchmarks/lazy_triangles.py
	$(BIN)/python benchmarks/kmeans_time.py

# Coreference on LitBank's ten splits, beside the published order (about an hour and a half; a stopped run goes on).
coreference: $(PEERS)
	$(BIN)/netclust reproduce coreference '$(SHARED)/coref/litbank' --state benchmarks/results/coreference-trials.jsonl \
	  --json benchmarks/results/coreference.json --plots docs/pictures
	$(BIN)/python benchmarks/coreference_speed.py
	$(BIN)/python benchmarks/coreference_scorer.py
	$(BIN)/python benchmarks/antecedent_learning.py
	$(BIN)/python benchmarks/global_loss.py
	$(BIN)/python benchmarks/network_learned_loss.py

# Ranking answers on WikiQA beside the published table (some 6 minutes), and what it costs.
ranking: $(PEERS)
	$(BIN)/netclust reproduce wikiqa '$(SHARED)/wikiqa' --json benchmarks/results/wikiqa.json
	$(BIN)/python benchmarks/ranking.py

# Multi-label models, and what approximate inference does to training (an hour or so); what searches cost.
multilabel: $(PEERS)
	$(BIN)/python benchmarks/binary_networks.py
	$(BIN)/python benchmarks/multilabel.py
	$(BIN)/netclust reproduce approximate-inference '$(SHARED)/multilabel' \
	  --json benchmarks/results/approximate-inference.json --plots docs/pictures

# Max-margin models of chains, attractive networks, matchings and grammars, and what they do for the detector (an hour).
structured: $(PEERS)
	$(BIN)/python benchmarks/letter_chains.py
	$(BIN)/python benchmarks/host_sequences.py
	$(BIN)/python benchmarks/scenes.py
	$(BIN)/python benchmarks/verdict_smoothing.py
	$(BIN)/python benchmarks/matching.py
	$(BIN)/python benchmarks/cluster_tracking.py
	$(BIN)/python benchmarks/parsing.py
	$(BIN)/python benchmarks/parsing_likelihood.py

# Install the wheel on every other Python here, from simulated records to verdicts.
smoke:
	PYTHON=$(PYTHON) bash .ci/smoke

# `make demo` as an ordinary user of a Debian with Python, venv, make and git alone (needs root).
bare:
	.ci/bare --user make demo

# The files of requirements/ from pyproject.toml; UPGRADE=1 takes newer versions. Needs a network, some minutes.
lock:
	rm -rf .venv-lock && $(PYTHON) -m venv .venv-lock
	.venv-lock/bin/python -m pip install --quiet --disable-pip-version-check uv
	PATH="$$PWD/.venv-lock/bin:$$PATH" sh requirements/lock.sh
	rm -rf .venv-lock

clean:
	rm -rf $(VENV) .venv-* build dist *.egg-info demo site netclust/kernels/prebuilt_files
