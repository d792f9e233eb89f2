# %% [markdown]
# # For the operator: from a model to alerts that are answered
#
# Cells are marked with `# %%`: run the file (`python examples/answering.py`), or cell by cell in an editor.
# Everything is simulated; with your own records only the two `simulate` lines change.

# %%
from collections import Counter

import netclust
from netclust.stream.alerts.cluster_alerts import alerts_of

past = netclust.simulate(20_000, seed=1).table()
today = netclust.simulate(8_000, seed=2, day=1, attacks=("icmp_flood", "slow_scan", "icmp_tunnel")).table()
model = netclust.train_network(past, netclust.load_params("late"), seed=0)

# %% [markdown]
# ## Run it as a daemon would
#
# Batches come in, verdicts go out, and the referents behind anomalous verdicts are kept, so that they can be explained.

# %%
config = netclust.LinkerConfig.stream(referent_window=1000, feedback="gold", delay=100)
linker = netclust.Linker(model, config)
shown = 0
for start in range(0, len(today), 1000):
    batch = model.encoding.encode(today[start : start + 1000], linker.labels)
    verdicts, evidence = linker.process_with_evidence(batch)
    print(f"records {start:5d} to {start + len(batch):5d}: {len(evidence):3d} anomalous")
    if len(evidence) and shown < 2:
        shown += 1
        print(netclust.explain(linker, batch, verdicts, evidence, int(evidence.rows[0])).text())

# %% [markdown]
# ## Alerts: one a cluster, not one a record

# %%
alerts = alerts_of(linker.clusters())
for alert in alerts[:5]:
    print(f"cluster {alert.cluster}: {alert.kind}, {alert.records} records, top score {alert.top_score:.1f}")

# %% [markdown]
# ## Answer one, and take the answer back
#
# "That was normal" covers the members that can still be linked to and whatever joins them. No retraining.

# %%
busiest, _ = Counter(verdicts.cluster[verdicts.anomalous].tolist()).most_common(1)[0]
answer = linker.label_cluster(busiest, linker.normal_label)
quiet = linker.score_only(batch)
linker.undo(answer)
loud = linker.score_only(batch)
print(
    f"the last batch again: {int(quiet.anomalous.sum())} anomalous with the answer, {int(loud.anomalous.sum())} without"
)

# %% [markdown]
# ## Stop and go on
#
# A snapshot holds everything that the next verdict depends on, besides the model.

# %%
again = netclust.Linker.restore(model, linker.snapshot())
assert again.score_only(batch).score.tobytes() == loud.score.tobytes()
print("restored:", again.counters()["records_total"], "records")
