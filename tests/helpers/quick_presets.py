"""Presets that train in a moment, for tests of what is done with them."""

from __future__ import annotations

import msgspec

from netclust.models.network.params import TrainParams, load_params


def quick(name: str) -> TrainParams:
    """The preset, learned in a hurry, with a reference set that few records allow."""
    preset = load_params(name)
    common = {} if preset.learner == "lsp" else {"false_alarm_rate": 0.05, "reference_size": 280}
    choice = "normal" if preset.reference_choice == "normal" else "proportional"
    return msgspec.structs.replace(
        preset, steps=20, training_window=200, epochs=1, holdout=0.1, reference_choice=choice, **common
    )
