"""A parser's features, oracle and learning; lexicon, notes of auxiliary parsers, and a model file nobody trusts."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest
from parse_twins import every_tree, made_grammar, node_scores

from netclust.errors import InputError, ModelError
from netclust.foundation import container
from netclust.learners.frank_wolfe import FrankWolfe
from netclust.learners.minmax import Inference, linear_set, min_max
from netclust.learners.one_slack import OneSlack
from netclust.learners.perceptron import Lsp
from netclust.models.parsing.auxiliary import Auxiliary, SpanProblem, cross_fitted_notes
from netclust.models.parsing.binarisation import Binarisation
from netclust.models.parsing.charts import derivation_score
from netclust.models.parsing.encoder import GrammarEncoder, TreeExample, training_examples
from netclust.models.parsing.grammar import Grammar
from netclust.models.parsing.lexicon import Lexicon, signature
from netclust.models.parsing.likelihood import expected_features, train_likelihood
from netclust.models.parsing.parse_grid import tree_program
from netclust.models.parsing.parsing_problem import GrammarProblem, Parse, Sentence, generative_weights
from netclust.models.parsing.span_features import SpanVocabulary, names_of_span
from netclust.models.parsing.syntax import Tree, bracketed_syntax, syntax_words
from netclust.models.parsing.task import TASK, GrammarSettings
from netclust.models.parsing.toy_treebank import toy_trees
from netclust.models.structured_model import KIND, StructuredModel
from netclust.models.structured_task import choose_cost, learn
from netclust.problems.sparse_features import in_full

TREES = toy_trees(40, seed=1)
NEW = [TreeExample(syntax_words(tree), tree) for tree in toy_trees(60, seed=2)]


def prepared(
    model: Any = "lexical", **chosen: Any
) -> tuple[GrammarSettings, GrammarEncoder, GrammarProblem, list[Any]]:
    settings = GrammarSettings(model=model, **{"C": 100.0, "epsilon": 1.0, **chosen})
    raw = TASK.examples(TREES, settings)
    encoder = TASK.fit(raw, settings)
    return settings, encoder, TASK.problem(encoder, settings), TASK.encode(encoder, raw)


def leaf(tag: str, word: str) -> Tree:
    return Tree(tag, word=word)


@pytest.mark.parametrize("model", ["basic", "lexical", "lexical-aux"])
def test_scores_are_linear_in_the_features(model: Any) -> None:
    _, encoder, problem, examples = prepared(model)
    rng = np.random.default_rng(0)
    w = rng.normal(size=problem.dimension)
    assert len(TASK.weight_names(encoder, GrammarSettings(model=model))) == problem.dimension
    for x, y in examples[:15]:
        h, loss = problem.max_violating(x, y, w, 0.3)
        scores = problem.scores(x, w)
        phi = [problem.joint_features(x, one) for one in (y, h)]
        for one, features in zip((y, h), phi, strict=True):
            assert features @ w == pytest.approx(derivation_score(encoder.grammar, scores, one.rows), abs=1e-8)
        np.testing.assert_allclose(in_full(problem.difference(x, y, h), problem.dimension), phi[0] - phi[1], atol=1e-9)
        assert loss == problem.loss(y, h)
        assert phi[0] @ w <= phi[1] @ w + 0.3 * loss + 1e-9
        best = problem.predict(x, w)
        assert problem.joint_features(x, best) @ w >= max(phi[0] @ w, phi[1] @ w) - 1e-9
        assert problem.loss(y, y) == 0


def test_features_by_hand() -> None:
    tree = Tree("S", (Tree("NP", (leaf("N", "rain"),)), leaf("V", "falls")))
    encoder = GrammarEncoder.fit([tree] * 6, Binarisation(), spans=True)
    problem = TASK.problem(encoder, GrammarSettings())
    x, y = encoder.example(TreeExample(("rain", "falls"), tree))
    assert y is not None
    names = TASK.weight_names(encoder, GrammarSettings())
    phi = {name: value for name, value in zip(names, problem.joint_features(x, y).tolist(), strict=True) if value}
    assert phi.pop("S -> NP+N V") == phi.pop("root S") == 1
    assert "log P(word | tag)" not in phi  # it is 0: either word is the only one of its tag, and not rare
    assert set(phi.values()) == {1}
    assert {name for name in phi if "middle" in name or "&" in name} <= set(phi)
    assert {"NP: first=rain", "N: first=rain", "NP: before,first&1=<s>,rain", "S: last=falls", "V: before=rain"} <= set(
        phi
    )
    assert len(phi) == 12 * 4  # NP, N, V and S, each once with its length and once without
    assert not any(name.startswith("@") for name in names if ":" in name)


def test_relative_frequencies_by_hand() -> None:
    one = Tree("S", (leaf("N", "a"), leaf("N", "b")))
    two = Tree("S", (leaf("N", "a"), Tree("S", (leaf("N", "b"), leaf("V", "c")))))
    grammar = Grammar.of_trees([one, one, two])
    problem = GrammarProblem(grammar)
    rows = [h for h in map(grammar.derivation, (one, one, two)) if h is not None]
    w = generative_weights(problem, rows)
    assert grammar.rule_names() == ("S -> N N", "S -> N S", "S -> N V")
    np.testing.assert_allclose(np.exp(w), [2 / 4, 1 / 4, 1 / 4, 1.0, np.e])
    counts = np.bincount(np.concatenate(rows)[:, 4][np.concatenate(rows)[:, 4] >= 0])
    rng = np.random.default_rng(0)
    for _ in range(20):  # no other probabilities make these trees more likely
        assert counts @ np.log(rng.dirichlet(np.ones(3))) <= counts @ w[:3]


def test_a_learned_parser_keeps_margins_and_beats_counts() -> None:
    found = {}
    for model in ("generative", "basic", "lexical"):
        settings, encoder, problem, examples = prepared(model, C=1000.0)
        learned = learn(TASK, settings, encoder, examples)
        assert learned.converged
        pairs = [(y, problem.predict(x, learned.w)) for x, y in TASK.encode(encoder, NEW)]
        found[model] = TASK.measure(pairs)["f1"]
        if model == "lexical":
            assert np.mean([problem.loss(y, problem.predict(x, learned.w)) for x, y in examples]) < 2
    assert found["lexical"] > found["generative"]


def test_every_learner_trains_it_to_one_optimum() -> None:
    _, _, problem, examples = prepared("basic")
    one = OneSlack(C=10.0, epsilon=0.05).fit(problem, examples)
    blocks = FrankWolfe(C=10.0, epsilon=0.05, max_iterations=400).fit(problem, examples)
    assert one.converged
    # n-slack and one-slack have one optimum: bounds of either hold for the other
    assert one.dual <= blocks.objective + 1e-6
    assert blocks.dual <= one.objective + 1e-6
    online = Lsp().fit(problem, examples, epochs=4, C=0.1, seed=0)
    assert online.losses[-1] < online.losses[0]


def test_the_learned_weights_are_the_optimum_over_all_trees() -> None:
    """The program with a constraint for every tree: the objective by enumeration lies within the bounds."""
    rng = np.random.default_rng(0)
    grammar = made_grammar(rng, 4, 24)
    problem, C, examples = GrammarProblem(grammar, 3), 2.0, []
    for n in (2, 3, 4):
        x = Sentence(("w",) * n, rng.normal(-2, 1, (n, 2)), rng.integers(-1, 3, (n, n + 1, 2)).astype(np.int32))
        trees = [Parse(np.array(rows), grammar, x.words) for rows in every_tree(grammar, n)]
        examples.append((x, trees[int(rng.integers(len(trees)))], trees))
    fit = OneSlack(C=C, epsilon=0.01).fit(problem, [(x, y) for x, y, _ in examples])
    slack = [
        max(problem.loss(y, h) + fit.w @ (problem.joint_features(x, h) - problem.joint_features(x, y)) for h in trees)
        for x, y, trees in examples
    ]
    primal = fit.w @ fit.w / 2 + C * np.mean(slack)
    assert primal == pytest.approx(fit.objective, rel=1e-9)
    assert fit.dual - 1e-9 <= primal <= fit.dual + 0.01 * C + 1e-9
    # expected features are those over all trees, and the gradient of log Z
    x, _, trees = examples[2]
    phi = np.array([problem.joint_features(x, h) for h in trees])
    weights = np.exp(phi @ fit.w * 0.1)
    log_z, mean = expected_features(problem, x, fit.w * 0.1)
    assert log_z == pytest.approx(np.log(weights.sum()))
    np.testing.assert_allclose(mean, weights @ phi / weights.sum(), atol=1e-9)


def test_the_compiled_program_has_the_optimum_of_cutting_planes() -> None:
    """Learning as one quadratic program over prices of constraints on trees, and by constraints for single trees."""
    rng = np.random.default_rng(1)
    grammar = made_grammar(rng, 4, 16)
    problem, C, examples, compiled = GrammarProblem(grammar, 2), 0.01, [], []
    for n in (2, 3, 3):
        x = Sentence(("w",) * n, rng.normal(-2, 1, (n, 2)), rng.integers(-1, 2, (n, n + 1, 2)).astype(np.int32))
        trees = [Parse(np.array(rows), grammar, x.words) for rows in every_tree(grammar, n)]
        y = trees[int(rng.integers(len(trees)))]
        examples.append((x, y))
        program = tree_program(grammar, n)
        truth, F = program.indicators(y.rows), np.zeros((program.rows.shape[1], problem.dimension))
        for j, unit in enumerate(np.eye(problem.dimension)):
            scores = problem.scores(x, unit)
            F[:, j] = np.concatenate([node_scores(grammar, scores, program.nodes), scores.rule[program.rules[:, 3]]])
        wrong = np.where(truth[: len(program.nodes)] > 0, 0.0, 100.0 / (2 * n - 1))
        loss = np.concatenate([wrong, np.zeros(len(program.rules))])
        relaxed = linear_set(program.rows, program.sides, equal=len(program.sides))
        compiled.append(Inference(F, loss, 0.0, truth, relaxed))
        for h in trees:  # what is compiled is what is searched
            mu = program.indicators(h.rows)
            np.testing.assert_allclose(F.T @ mu, problem.joint_features(x, h), atol=1e-9)
            assert loss @ mu == pytest.approx(problem.loss(y, h))
    joint = min_max(compiled, C / len(examples))
    planes = OneSlack(C=C, epsilon=1e-4).fit(problem, examples)
    assert joint.gap < 1e-6
    assert joint.primal == pytest.approx(planes.objective, abs=1e-4)
    np.testing.assert_allclose(joint.w, planes.w, atol=2e-3)


def test_likelihood_is_at_its_optimum() -> None:
    settings, encoder, problem, examples = prepared("lexical", objective="likelihood", C=30.0)
    learned = learn(TASK, settings, encoder, examples)
    assert learned.converged

    def gradient(w: Any) -> Any:
        parts = [expected_features(problem, x, w)[1] - problem.joint_features(x, y) for x, y in examples]
        return w + 30.0 * np.mean(parts, axis=0)

    assert np.abs(gradient(learned.w)).max() < 0.02 * np.abs(gradient(0 * learned.w)).max()
    pairs = [(y, problem.predict(x, learned.w)) for x, y in examples]
    assert TASK.measure(pairs)["f1"] > 95
    with pytest.raises(InputError, match="trees that the grammar makes"):
        train_likelihood(problem, [])


def test_words_that_were_never_seen_and_sentences_without_a_tree() -> None:
    settings, encoder, problem, examples = prepared("lexical")
    w = learn(TASK, settings, encoder, examples).w
    x, none = encoder.example(TreeExample(("the", "zorker", "saw", "the", "quonker", ".")))
    assert none is None
    assert bracketed_syntax(problem.predict(x, w).tree) == (
        "(S (NP (DT the) (NN zorker)) (VP (VBD saw) (NP (DT the) (NN quonker))) (. .))"
    )
    x, _ = encoder.example(TreeExample((".", "the", "the", ".")))
    broken = problem.predict(x, w)
    assert len(broken.rows) == 0
    assert broken.tree.label == "FRAG"
    assert syntax_words(broken.tree) == (".", "the", "the", ".")
    assert problem.loss(examples[0][1], broken) == 100.0
    assert not problem.joint_features(x, broken).any()
    with pytest.raises(InputError, match="no tree as given"):
        problem.max_violating(x, broken, w, 1.0)
    with pytest.raises(InputError, match="weights are given"):
        problem.predict(x, w[:-1])


def test_the_lexicon_by_hand() -> None:
    words = [("run", "N")] * 6 + [("run", "V")] * 2 + [("old", "J")] * 2 + [("odd", "J"), ("Rex", "P")]
    lexicon = Lexicon.of_trees([Tree("S", tuple(leaf(tag, word) for word, tag in words))])
    assert (lexicon.tags, lexicon.count("run"), lexicon.count("nothing")) == (("J", "N", "P", "V"), 8, 0)
    likely = np.exp(lexicon.log_likelihoods(["run", "old", "new"]))
    np.testing.assert_allclose(likely[0], [0, 6 / 6, 0, 2 / 2])  # often: as counted, over the tag
    # P(J | <a>): seen 1 of 1, and rare words are half J, half P
    share = np.array([(1 + 0.5) / 2, 0, 0.5 / 2, 0])
    np.testing.assert_allclose(likely[2], share / np.array([3, 6, 1, 2]))
    np.testing.assert_allclose(likely[1], (np.array([2, 0, 0, 0]) + share) / 3 * 2 / np.array([3, 6, 1, 2]))
    assert (lexicon.token("old"), lexicon.token("odd"), lexicon.token("Max")) == ("old", "<a>", "<Aa>")
    assert [signature(w) for w in ("USA", "e-mail", "B2", "1995", "--", "walking")] == [
        "<AA>", "<a->", "<0-a>", "<0>", "<mark>", "<a ing>",
    ]  # fmt: skip


def test_names_of_spans_and_what_others_say() -> None:
    notes = {"parser": {(0, 2): "NP"}, "spans": {}}
    names = names_of_span("abcd", 0, 3, notes)
    assert names[6] == "middle=b"
    assert names[-2:] == ["parser: none", "spans: none"]
    assert names_of_span("abcd", 0, 2, notes)[-2:] == ["parser: NP", "spans: none"]
    assert len(names_of_span("abcd", 0, 4)) == 6
    vocabulary = SpanVocabulary.of_spans([names, names, ["once"]])
    features = vocabulary.features("abcd", notes)
    assert features.shape == (4, 5, 15)
    assert {vocabulary.names[f] for f in features[0, 3] if f >= 0} == set(names)
    assert "once" not in vocabulary.names
    assert SpanVocabulary(()).features("abcd").shape == (4, 5, 0)


def test_spans_one_by_one_are_called_best() -> None:
    rng = np.random.default_rng(3)
    problem = SpanProblem(6, 2)
    for _ in range(20):
        features = rng.integers(-1, 6, (3, 4, 3)).astype(np.int32)
        x, w = Sentence(("a", "b", "c"), np.zeros((3, 0)), features), rng.normal(size=12)
        y = np.where(np.arange(3)[:, None] < np.arange(4), rng.integers(-1, 2, (3, 4)), -1)
        h, loss = problem.max_violating(x, y, w, 0.05)
        for s in range(3):
            for e in range(s + 1, 4):
                score = [float(sum(w[2 * f + k] for f in features[s, e] if f >= 0)) for k in range(2)]
                values = [v + 0.05 * 100 / 6 * (k - 1 != y[s, e]) for k, v in enumerate([0.0, *score])]
                assert values[h[s, e] + 1] == pytest.approx(max(values))
        assert loss == problem.loss(y, h)
        change = in_full(problem.difference(x, y, h), 12)
        np.testing.assert_allclose(change, problem.joint_features(x, y) - problem.joint_features(x, h), atol=1e-12)


def test_notes_of_training_sentences_are_of_parsers_that_have_not_seen_them() -> None:
    fitted, notes = cross_fitted_notes(TREES, Binarisation())
    seen = [fitted.notes(syntax_words(tree)) for tree in TREES]

    def right(said: Any) -> int:
        total = 0
        for tree, one in zip(TREES, said, strict=True):
            gold = Parse.of_tree(fitted.grammar, tree)
            total += sum(one["spans"].get((int(s), int(e))) is not None for s, e in gold.rows[:, :2])
        return total

    assert right(notes) < right(seen)
    raw = training_examples(TREES, Binarisation())
    assert [example.notes for example in raw] == notes
    with pytest.raises(InputError, match="have not seen them"):
        TASK.fit(training_examples(TREES), GrammarSettings(model="lexical-aux"))
    with pytest.raises(InputError, match="needs its tree"):
        TASK.fit([TreeExample(("a",))], GrammarSettings())
    assert isinstance(fitted, Auxiliary)


def test_c_is_chosen_by_folds_of_the_training_trees() -> None:
    settings, encoder, _, _ = prepared("basic")
    chosen = choose_cost(TASK, settings, TASK.examples(TREES, settings), encoder, grid=(1e-6, 10.0), folds=2)
    assert chosen.losses[chosen.grid.index(chosen.C)] == min(chosen.losses)
    assert max(chosen.losses) < 20


@pytest.mark.parametrize("model", ["generative", "lexical", "lexical-aux"])
def test_a_model_file_parses_as_before(model: Any) -> None:
    settings, encoder, _, examples = prepared(model)
    made = StructuredModel(task=TASK, settings=settings, encoder=encoder, w=learn(TASK, settings, encoder, examples).w)
    again = StructuredModel.from_bytes(made.to_bytes(), "file", "grammar")
    sentences = [TreeExample(example.words) for example in NEW[:20]]
    for one, other in zip(made.predict(sentences), again.predict(sentences), strict=True):
        assert one.tree == other.tree
    assert made.evaluate(NEW[:20]) == again.evaluate(NEW[:20])
    assert made.to_bytes() == again.to_bytes()


@pytest.fixture(scope="module")
def file() -> bytes:
    settings, encoder, problem, _ = prepared("lexical-aux")
    return StructuredModel(task=TASK, settings=settings, encoder=encoder, w=np.ones(problem.dimension)).to_bytes()


@pytest.mark.parametrize(
    "change",
    [
        lambda e: e["rules"].append([0, 0, 10**6]),
        lambda e: e["rules"].reverse(),
        lambda e: e.update(symbols=e["symbols"][:-1]),
        lambda e: e.update(preterminals=[-1]),
        lambda e: e["lexicon"].update(words={}),
        lambda e: e["lexicon"].update(signatures={"<a>": {"NN": -3}}),
        lambda e: e["lexicon"]["words"].update(odd={"NEW": 1}),
        lambda e: e["lexicon"]["signatures"].update(odd={"NEW": 1}),
        lambda e: e["vocabulary"]["names"].pop(),
        lambda e: e["auxiliary"]["slots"].append(10**9),
        lambda e: e["auxiliary"]["slots"].append(10**30),
        lambda e: e["auxiliary"]["values"].__setitem__(0, 1e300),
        lambda e: e["auxiliary"]["kinds"].pop(),
        lambda e: e["auxiliary"].update(grammar=[0.0]),
        lambda e: e["binarisation"].update(vertical=-1),
        lambda e: e.update(more=1),
    ],
)
def test_a_spoiled_model_file_is_refused(file: bytes, change: Any) -> None:
    arrays, header = container.unpack_container(file, KIND, "model")
    change(header["encoder"])
    with pytest.raises((ModelError, InputError)):
        StructuredModel.from_bytes(container.pack_container(KIND, arrays, header))


def test_settings_that_cannot_be_meant_are_refused() -> None:
    for wrong in ({"vertical": 0}, {"horizontal": 99}, {"C": -1.0}):
        with pytest.raises(InputError):
            GrammarSettings(**wrong)
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"model": "no such"}, GrammarSettings)
