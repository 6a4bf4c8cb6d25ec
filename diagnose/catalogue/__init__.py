"""The catalogue of models and cards (rules/models, rules/hardware), and models read from their own config.json."""

from diagnose.catalogue.cards import (
    Card,
    capacity_stated,
    card,
    card_names,
    cards_holding,
    cards_named,
    cards_of_capacity,
    cards_of_class,
    sizes_sold,
)
from diagnose.catalogue.config_json import model_of_config
from diagnose.catalogue.denoisers import Denoiser, denoiser, denoiser_of_size, network
from diagnose.catalogue.models import (
    UNPACKED,
    every_vocabulary,
    families,
    kin,
    model,
    params_of_name,
    unescaped,
    vocabularies,
)
from diagnose.catalogue.parameter_count import Experts, Latent, Model, Vision

__all__ = [
    "UNPACKED",
    "Card",
    "Denoiser",
    "Experts",
    "Latent",
    "Model",
    "Vision",
    "capacity_stated",
    "card",
    "card_names",
    "cards_holding",
    "cards_named",
    "cards_of_capacity",
    "cards_of_class",
    "denoiser",
    "denoiser_of_size",
    "every_vocabulary",
    "families",
    "kin",
    "model",
    "model_of_config",
    "network",
    "params_of_name",
    "sizes_sold",
    "unescaped",
    "vocabularies",
]
