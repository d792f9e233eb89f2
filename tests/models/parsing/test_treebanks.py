"""Treebanks in and out: any tree comes back, what is broken is told with its line, nothing breaks the reader."""

from __future__ import annotations

import gzip
import lzma
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netclust.errors import InputError
from netclust.models.parsing.syntax import Tree, bracketed_syntax, syntax_tags, syntax_words
from netclust.models.parsing.toy_treebank import toy_trees
from netclust.models.parsing.treebanks import (
    MAX_DEPTH,
    DocumentLimits,
    clean,
    parse_brackets,
    read_sentences,
    read_trees,
)

PENN = """
( (S
    (NP-SBJ-1 (DT The) (NN report) )
    (VP (VBZ is)
      (VP (VBN seen)
        (NP (-NONE- *-1) )
        (PP-LOC=2 (-LRB- -LRB-) (IN in) (NP (NNP Rome) ))))
    (. .) ))
(S (NP-SBJ (-NONE- *)) (-NONE- 0))
(TOP (FRAG (UH Yes)))
( (S (UH No)) (. .))
"""


def test_the_penn_format_is_read_and_cleaned(tmp_path: Path) -> None:
    path = tmp_path / "some.mrg"
    path.write_text(PENN)
    trees = read_trees(path).trees
    assert [bracketed_syntax(tree) for tree in trees] == [
        "(S (NP (DT The) (NN report)) (VP (VBZ is) (VP (VBN seen) (PP (-LRB- -LRB-) (IN in) (NP (NNP Rome))))) (. .))",
        "(TOP (FRAG (UH Yes)))",
        "(TOP (S (UH No)) (. .))",
    ]
    everything = read_trees(path, functional_tags=True, traces=True).trees
    assert len(everything) == 4
    assert everything[0].children[0].label == "NP-SBJ-1"
    assert syntax_words(everything[1]) == ("*", "0")


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bytes])
def test_files_come_back_packed_or_not(tmp_path: Path, pack: object) -> None:
    path, trees = tmp_path / "some.mrg", toy_trees(20)
    path.write_bytes(pack("".join(f"{bracketed_syntax(tree)}\n" for tree in trees).encode()))  # type: ignore[operator]
    assert read_trees(path).trees == trees


NAMES = st.text(
    st.characters(codec="utf-8", exclude_categories=("Z", "C"), exclude_characters="()"), min_size=1, max_size=6
)


@settings(max_examples=80, deadline=None)
@given(
    st.recursive(
        st.builds(lambda label, word: Tree(label, word=word), NAMES, NAMES),
        lambda below: st.builds(lambda label, parts: Tree(label, tuple(parts)), NAMES, st.lists(below, min_size=1)),
        max_leaves=15,
    )
)
def test_any_tree_comes_back(tree: Tree) -> None:
    assert list(parse_brackets(bracketed_syntax(tree).replace(" ", "\n "))) == [tree]


@settings(max_examples=150, deadline=None)
@given(st.text("()ab \n", max_size=60))
def test_any_text_is_read_or_refused_with_its_line(text: str) -> None:
    try:
        trees = list(parse_brackets(text, "file"))
    except InputError as error:
        assert str(error).startswith("file line ")  # noqa: PT017 (nothing is raised for some texts)
    else:
        assert text.count("(") == text.count(")")
        assert sum(len(syntax_words(tree)) for tree in trees) <= len(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("(S (N a)", "line 1: the bracket that is opened here is never closed"),
        ("(S\n(N a)))", "line 2: a bracket is closed that was not opened"),
        ("(S (N a b))", "line 1: the word 'b' stands beside the word 'a'"),
        ("(S (N a) b)", "line 1: the word 'b' stands beside a bracket"),
        ("(S a (N b))", "line 1: the word 'a' stands beside a bracket"),
        ("(S (N))", "line 1: the bracket 'N' has nothing in it"),
        ("()", "line 1: the bracket '' has nothing in it"),
        ("(S ((N a) (N b)))", "line 1: a bracket within a tree has no label"),
        ("\n\nword (N a)", "line 3: 'word' stands outside of brackets"),
        ("(N \x1b[31m)(\x1b", "never closed"),
        ("(S " * 300, f"line 1: more than {MAX_DEPTH} brackets"),
        ("(S " + "(N a) " * 1001 + ")", "line 1: more than 1000 words"),
    ],
)
def test_what_is_broken_is_told_with_its_line(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "some.mrg"
    path.write_text(text)
    with pytest.raises(InputError) as told:
        read_trees(path)
    assert says in str(told.value)
    assert str(told.value).startswith(str(path))
    assert "\x1b" not in str(told.value)


def test_a_million_brackets_are_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "deep.mrg"
    path.write_text("(" * 1_000_000)
    with pytest.raises(InputError, match="brackets within each other"):
        read_trees(path)
    with pytest.raises(InputError, match="more than 5 trees"):
        list(parse_brackets("(N a)" * 6, limit=5))
    path.write_text("nothing".replace("nothing", "\n"))
    with pytest.raises(InputError, match="no tree in it"):
        read_trees(path)


def test_cleaning_keeps_labels_that_begin_with_a_mark() -> None:
    (tree,) = parse_brackets("(S (-LRB- x) (NP=2 (N y)) (ADVP|PRT-DIR (-NONE- *)))")
    assert bracketed_syntax(clean(tree) or tree) == "(S (-LRB- x) (NP (N y)))"


def test_sentences_are_lines(tmp_path: Path) -> None:
    path = tmp_path / "some.txt"
    path.write_text("She  slept .\n\n\tHe ( too ) .\r\n")
    assert read_sentences(path).sentences == (("She", "slept", "."), ("He", "(", "too", ")", "."))
    path.write_text("a " * 1001)
    with pytest.raises(InputError, match="line 1: 1001 words"):
        read_sentences(path)
    path.write_text("\n \n")
    with pytest.raises(InputError, match="no sentence"):
        read_sentences(path)
    path.write_text("a\nb\n")
    with pytest.raises(InputError, match="line 2: more than 1 sentences"):
        read_sentences(path, DocumentLimits(items=1))


def test_toy_trees_are_those_of_the_seed_with_all_their_ambiguities() -> None:
    trees = toy_trees(400, seed=3)
    assert trees == toy_trees(400, seed=3)
    assert trees != toy_trees(400, seed=4)
    assert trees[:100] == toy_trees(100, seed=3)
    written = [bracketed_syntax(tree) for tree in trees]
    for shape in ("(NX (NNS", "(SBAR (IN that)", "(ADVP (RB", "(CC and) (NP", "(NP (PRP"):
        assert any(shape in one for one in written)
    for tree in trees:
        tags = syntax_tags(tree)
        assert len(tags) == len(syntax_words(tree)) <= 15
    quiet = [bracketed_syntax(tree) for tree in toy_trees(300, seed=3, noise=0.0)]
    seen = [one for one in quiet if "(IN with) (NP (DT the) (NN telescope" in one]
    assert seen
    assert all("(NN pilot)) (PP (IN with) (NP (DT the) (NN telescope)))" in one or "pilot" not in one for one in seen)


@pytest.mark.parametrize("wrong", [{"count": 0}, {"noise": 1.5}, {"min_words": 30}, {"max_words": 4}, {"seed": -1}])
def test_toy_trees_that_cannot_be_made_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(InputError):
        toy_trees(**{"count": 3, **wrong})
