"""What people say of records and clusters: whom it covers, what undoing restores, and that verdicts do not change."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from linker_cases import assert_same, line, line_model, numbered

from netclust.errors import InputError
from netclust.linking.linker import Linker, LinkerConfig

WORM = 0.5  # far from both references of the line model: opens cluster 3


class Line:
    """A linker on the line model that is fed value by value and answers with label names."""

    def __init__(self, config=None):
        self.linker = Linker(line_model(), config or LinkerConfig(referent_window=50))

    def __call__(self, *values, **columns):
        verdicts = self.linker.process(line(values, first=self.linker.tick, **columns))
        return [self.linker.labels.name(k) for k in verdicts.label]

    def summary(self, cluster):
        return next(c.label for c in self.linker.clusters() if c.id == cluster)


def test_a_label_on_a_cluster_covers_its_members_and_its_future_joiners():
    feed = Line()
    assert feed(WORM, 0.51, 0.49, 0.7) == ["novel", "novel", "novel", "novel"]  # 0.7 is a cluster of its own
    event = feed.linker.label_cluster(3, "worm")
    assert (event.covered, event.applied) == (3, True)
    assert feed(WORM, 0.51, 0.7, 0.1) == ["worm", "worm", "novel", "normal"]
    assert (feed.summary(3), feed.summary(4)) == ("worm", "novel")
    assert feed.linker.clusters()[-2].records == 5


def test_a_label_on_a_record_covers_it_and_what_links_to_it():
    feed = Line()
    feed(WORM, 0.53)
    event = feed.linker.label_record("0:1", "worm")
    assert event.covered == 1
    assert feed(0.49, 0.54, 0.55) == ["novel", "worm", "worm"]
    assert feed.summary(3) == "novel"


def test_a_label_can_say_that_something_is_normal():
    feed = Line()
    feed(WORM)
    feed.linker.label_cluster(3, "normal")
    verdicts = feed.linker.process(line([0.5, 0.52], first=1))
    assert not verdicts.anomalous.any()
    assert (verdicts.score < 0).all()
    assert verdicts.cluster.tolist() == [3, 3]


def test_a_label_on_a_reference_class_covers_its_references_and_is_undone():
    feed = Line()
    event = feed.linker.label_cluster(1, "normal")
    assert event.covered == 1
    assert feed(0.9) == ["normal"]
    feed.linker.undo(event.event)
    assert feed(0.95, 0.9) == ["dos", "dos"]
    assert feed.summary(1) == "dos"


def test_verdicts_already_given_do_not_change():
    feed, quiet = Line(), Line()
    stream = line([WORM, 0.51, 0.1, 0.9])
    given, same = feed.linker.process(stream), quiet.linker.process(stream)
    event = feed.linker.label_cluster(3, "worm")
    feed.linker.undo(event.event)
    feed.linker.label_record("0:2", "worm")
    assert_same(given, same)


def test_members_that_left_the_window_are_not_covered():
    feed = Line(LinkerConfig(referent_window=2))
    feed(WORM, 0.51, 0.1, 0.1)
    assert feed.linker.label_record("0:0", "worm").covered == 0
    assert feed.linker.label_cluster(3, "worm").covered == 0
    assert feed.summary(3) == "worm"  # known, although nothing can join any more
    assert feed(WORM) == ["novel"]


@pytest.mark.parametrize("target", ["7:0", "0:99", "1:0", "65535:18446744073709551615"])
def test_a_record_that_is_not_known_is_not_covered(target):
    feed = Line()
    feed(WORM)
    event = feed.linker.label_record(target, "worm")
    assert (event.covered, event.applied) == (0, True)
    assert feed(WORM) == ["novel"]
    assert feed.linker.undo(event.event).covered == 0


def test_undo_restores_members_and_joiners():
    feed = Line()
    feed(WORM)
    event = feed.linker.label_cluster(3, "worm")
    assert feed(0.51, 0.49) == ["worm", "worm"]
    undo = feed.linker.undo(event.event)
    assert (undo.scope, undo.covered) == ("undo", 3)
    assert feed(WORM, 0.51, 0.49) == ["novel"] * 3
    assert feed.summary(3) == "novel"


def test_a_joiner_gets_back_what_the_member_it_joined_had():
    feed = Line(LinkerConfig(referent_window=50, label_delay=0))
    labels = numbered(feed.linker.labels, ["", "normal"])
    feed(WORM, 0.56, labels=labels)  # one cluster, whose second record turns out to be normal
    assert feed(0.44, 0.57) == ["novel", "normal"]
    event = feed.linker.label_cluster(3, "worm")
    assert feed(0.43, 0.58) == ["worm", "worm"]
    feed.linker.undo(event.event)
    assert feed(0.43, 0.58) == ["novel", "normal"]


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_undoing_in_any_order_leaves_what_the_others_say(order):
    feed = Line()
    feed(WORM)
    said = ["worm", "worm", "normal"]  # the same word twice: it must not be mistaken for one
    joiner = itertools.count()
    for word in said:
        feed.linker.label_cluster(3, word)
        assert feed(WORM + 0.001 * next(joiner)) == [word]
    left = [0, 1, 2]
    for event in order:
        feed.linker.undo(event)
        left.remove(event)
        want = said[left[-1]] if left else "novel"
        assert feed.summary(3) == want
        # Every member, joiners of each label included, says the same.
        assert feed(WORM, 0.501, 0.502) == [want] * 3


def test_undoing_goes_by_the_order_in_which_labels_count_not_in_which_they_were_said():
    feed = Line()
    feed(WORM)
    late = feed.linker.label_cluster(3, "worm", from_tick=3)
    early = feed.linker.label_cluster(3, "normal")
    assert feed(WORM, WORM, WORM) == ["normal", "normal", "worm"]
    assert feed.linker.undo(early.event).covered == 0
    assert (feed(WORM), feed.summary(3)) == (["worm"], "worm")
    feed.linker.undo(late.event)
    assert (feed(WORM), feed.summary(3)) == (["novel"], "novel")


def test_a_label_taken_back_before_it_counts_never_counts():
    feed = Line()
    feed(WORM)
    event = feed.linker.label_cluster(3, "worm", from_tick=10)
    undo = feed.linker.undo(event.event, from_tick=5)
    assert feed(*[WORM] * 15) == ["novel"] * 15
    assert (event.applied, event.undone, undo.applied, undo.covered) == (True, True, True, 0)
    other = feed.linker.label_cluster(3, "normal")
    feed.linker.undo(other.event)
    assert feed.summary(3) == "novel"


def test_a_label_counts_from_its_tick_to_that_of_its_undoing():
    feed = Line()
    event = feed.linker.label_cluster(3, "worm", from_tick=2)
    feed.linker.undo(event.event, from_tick=4)
    assert feed(*[WORM] * 6) == ["novel", "novel", "worm", "worm", "novel", "novel"]


def test_the_last_word_counts_between_people_and_the_stream():
    config = LinkerConfig(referent_window=50, label_delay=2)
    feed = Line(config)
    feed.linker.labels.add("scan")
    feed(WORM, labels=[3])
    event = feed.linker.label_record("0:0", "worm")
    assert feed(WORM, WORM) == ["worm", "worm"]
    assert feed(WORM) == ["scan"]  # now the stream's own label arrived
    feed.linker.undo(event.event)
    assert feed(WORM) == ["scan"]
    feed.linker.label_record("0:0", "normal")
    assert feed(WORM) == ["normal"]


def test_a_label_cannot_count_from_the_past():
    feed = Line()
    feed(WORM, WORM)
    before = feed.linker.snapshot()
    for say in (
        lambda: feed.linker.label_cluster(3, "a new name", from_tick=1),
        lambda: feed.linker.label_record("0:0", "a new name", from_tick=0),
        lambda: feed.linker.label_record("0:0", "a new name", from_tick=-5),
    ):
        with pytest.raises(InputError):
            say()
    assert feed.linker.snapshot() == before  # nothing of it stays, not even the name


@pytest.mark.parametrize(
    "target",
    ["", ":", "0", "0:", ":1", "a:1", "0:x", "-1:0", "0:-1", "0:1:2", " 0:1", "0:1\n", "٣:1", "0x1:1", "65536:1",
     "0:18446744073709551616", "0:" + "9" * 5000, None, 7],
)  # fmt: skip
def test_bad_record_ids_are_refused(target):
    with pytest.raises(InputError, match="source:seq"):
        Line().linker.label_record(target, "worm")


@pytest.mark.parametrize("number", [-1, 1 << 63, 1 << 80, 1.5, "3", None])
def test_bad_cluster_ids_events_and_ticks_are_refused(number):
    linker = Line().linker
    with pytest.raises(InputError):
        linker.label_cluster(number, "worm")
    with pytest.raises(InputError):
        linker.undo(number)
    if number is not None:
        with pytest.raises(InputError):
            linker.label_cluster(3, "worm", from_tick=number)


@pytest.mark.parametrize("name", ["", "x" * 256, "half a \ud800"])
def test_bad_label_names_are_refused(name):
    with pytest.raises(InputError, match="characters"):
        Line().linker.label_cluster(3, name)


def test_numbers_from_numpy_are_taken_and_can_be_saved():
    feed = Line()
    verdicts = feed.linker.process(line([WORM]))
    event = feed.linker.label_cluster(verdicts.cluster[0], "worm", from_tick=np.int64(1))
    feed.linker.undo(np.int64(event.event), from_tick=np.uint32(9))
    assert Linker.restore(feed.linker.model, feed.linker.snapshot()).events == feed.linker.events


def test_undoing_needs_a_label_that_is_known_and_not_undone():
    feed = Line()
    feed(WORM)
    with pytest.raises(InputError, match="not known"):
        feed.linker.undo(0)
    event = feed.linker.label_cluster(3, "worm")
    undo = feed.linker.undo(event.event)
    for number, why in ((event.event, "already"), (undo.event, "not known")):
        with pytest.raises(InputError, match=why):
            feed.linker.undo(number)


def test_old_events_stay_in_force_but_cannot_be_undone():
    feed = Line(LinkerConfig(referent_window=50, max_events=3))
    feed(WORM)
    events = [feed.linker.label_cluster(3, f"name {k}") for k in range(10)]
    assert len(feed.linker.events) == 3
    assert [e.event for e in events] == list(range(10))
    with pytest.raises(InputError, match="too old"):
        feed.linker.undo(6)
    for k in (9, 8):
        feed.linker.undo(k)
        assert len(feed.linker.events) == 3
    assert feed(WORM) == ["name 7"]


def test_what_waits_is_not_forgotten_and_cannot_pile_up():
    feed = Line(LinkerConfig(referent_window=50, max_events=3))
    feed(WORM)
    first = feed.linker.label_cluster(3, "worm")
    feed.linker.undo(first.event, from_tick=8)
    for k in range(5):  # these come and go; the label that is to be undone stays
        feed.linker.label_record("0:0", f"name {k}")
        assert len(feed.linker.events) == 3
    feed.linker.label_cluster(99, "worm", from_tick=7)
    before = feed.linker.snapshot()
    with pytest.raises(InputError, match="wait"):
        feed.linker.label_cluster(99, "another", from_tick=9)
    assert feed.linker.snapshot() == before
    feed(*[0.1] * 10)
    assert all(e.applied for e in feed.linker.events)
    assert feed.summary(3) == "novel"
    feed.linker.label_cluster(99, "another", from_tick=20)
