"""Errors that are written for the person who will read them, and their exit code."""

from __future__ import annotations


class NetclustError(Exception):
    """Base of every error that netclust raises on purpose."""

    exit_code = 1


class InputError(NetclustError):
    """Something from the outside (a file, a record, an option) cannot be used; the message says what to do.

    >>> InputError("flows.csv line 3: 'x' is not a number").exit_code
    2
    """

    exit_code = 2


class ModelError(InputError):
    """A model or snapshot file is corrupt, too new, too large or not ours."""
