# %% [markdown]
# # For the detection engineer: does the learned similarity pay on your traffic?
#
# Compare with the unlearned rule and with the nearest normal record, on attack types that training never saw, before
# believing any number.
# Run it: `python examples/engineer.py`.

# %%
import numpy as np

import netclust
from netclust.datasets.simulators.simulate import HELD_BACK, KNOWN
from netclust.metrics.detection_metrics import auc, detection_at

past = netclust.simulate(20_000, seed=1).table()
test = netclust.simulate(10_000, seed=5, day=3, attacks=(*KNOWN, *HELD_BACK)).table()

# %% [markdown]
# ## Three rules, the same referents, several draws
#
# One draw of a reference set says little: mean and spread over draws do.

# %%
from netclust.models.network.train_network import fit_network

presets = {"netclust": "reference-280", "unlearned": "unlearned-reference-280", "nearest normal": "nearest-normal-280"}
config = netclust.LinkerConfig.thesis(feedback="none")
found: dict[str, list[tuple[float, float]]] = {name: [] for name in presets}
for name, preset in presets.items():
    fit = fit_network(past, netclust.load_params(preset), seed=0)
    for draw in range(5):
        run = netclust.evaluate_network(fit.draw(draw), [test], config)
        score, truth = run.verdicts.score, run.truth
        found[name].append((auc(score, truth) or 0.0, detection_at(score, truth, 0.01) or 0.0))

print(f"{'':16s}  AUC              detection at 1 % false alarms")
for name, numbers in found.items():
    mean, sd = np.mean(numbers, axis=0), np.std(numbers, axis=0, ddof=1)
    print(f"{name:16s}  {mean[0]:.3f} ± {sd[0]:.3f}    {mean[1]:.2f} ± {sd[1]:.2f}")

# %% [markdown]
# ## Which types are missed

# %%
model = fit_network(past, netclust.load_params("reference"), seed=0).draw(0)
metrics = netclust.evaluate_network(model, [test], config).metrics()
for name, of in sorted(metrics["per_class"].items(), key=lambda item: item[1]["detection_rate"])[:5]:
    seen = "" if name in KNOWN else "  (never trained on)"
    print(f"{name:22s} {of['detection_rate']:.0%} of {of['records']}{seen}")
print(f"false alarms: {metrics['false_positive_rate']:.1%}, calibrated for {model.calibration.false_alarm_rate:.1%}")

# %% [markdown]
# ## One file to ship
#
# `netclust info` shows what is in it; loading it never runs code.

# %%
content = model.to_bytes()
assert netclust.Model.from_bytes(content).fingerprint == model.fingerprint
print(f"{len(content):,} bytes, {len(model.reference):,} referents, fingerprint {model.fingerprint[:16]}")
