# %% [markdown]
# # For the researcher: linking as a library
#
# Learn a pairwise similarity so that linking each item to its best earlier item rebuilds the clustering that people
# want.
# Run it: `python examples/researcher.py`.

# %%
import numpy as np
from sklearn.datasets import load_iris, load_wine
from sklearn.model_selection import cross_val_score

from netclust.sklearn import LinkClassifier

for load in (load_iris, load_wine):
    X, y = load(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    scores = {
        learner: cross_val_score(LinkClassifier(learner=learner), X[order], y[order], cv=5)
        for learner in ("unlearned", "lsp")
    }
    print(load.__name__, {name: f"{s.mean():.3f} ± {s.std():.3f}" for name, s in scores.items()})

# %% [markdown]
# ## The learner itself
#
# The latent structured perceptron on a stream of labelled items, with what it did in every epoch.

# %%
from netclust.models.network.stream_perceptron import StreamRule, train_stream
from netclust.records.batch import Batch

rng = np.random.default_rng(1)
label = rng.integers(0, 3, 400).astype(np.int32)
num = np.column_stack([label / 2 + rng.normal(0, 0.06, 400), rng.random((400, 3))]).astype(np.float32)
items = Batch(num=num, code=np.zeros((400, 0), np.uint16), label=label)
fit = train_stream(items, (), StreamRule(training_window=100, epochs=10))
print("updates by epoch:", [epoch.updates for epoch in fit.epochs])
print("weights (the first attribute tells the classes apart, the others are noise):", fit.averaged[:4].round(2))

# %% [markdown]
# ## Streaming, inside river
#
# The same linking without training: features may come and go, labels come late.

# %%
from river import datasets, evaluate, metrics

from netclust.river import LinkDetector, OnlineLinkClusterer

shuttle = list(datasets.Shuttle().take(3000))
for late in (False, True):
    detector = LinkDetector(window=1000, use_labels=late)
    area = evaluate.progressive_val_score(shuttle, detector, metrics.ROCAUC(n_thresholds=100), delay=100)
    print(f"Shuttle, {'labels 100 records late' if late else 'no labels'}: AUC {area.get():.3f}")

clusterer = OnlineLinkClusterer(grace=50, radius=1.0)
for x, _ in shuttle[:1000]:
    clusterer.learn_one(x)
print("clusters in 1,000 records:", len({clusterer.predict_one(x) for x, _ in shuttle[:1000]}))
