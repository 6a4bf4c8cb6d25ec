"""What the weights of a model for pictures or clips take on a card: its network, and text encoders and VAE beside it.

Nothing of the pictures is in these figures. What is larger than the card here is so at any resolution, batch and adapter rank.
"""

from __future__ import annotations

from diagnose import catalogue, rule_files
from diagnose.catalogue.denoisers import USUAL_BITS, Denoiser, is_network
from diagnose.facts import Fact, FactBook, derived_fact
from diagnose.units import Size

#: Of what the parts take together, so much is allocated at least once something is computed.
THERE = 0.8

#: Phases in which the weights may still be on their way.
LOADING = ("model_load", "init", "dataset", "unknown")


def facts_of_drawing(book: FactBook) -> list[Fact]:
    """Name, size and weights of the model that the job names, and what of its pipeline lies on one card at once."""
    key = catalogue.denoiser(book.word("model.path") or "") or book.word("drawing.network")
    if key is None or not is_network(key):
        return []
    network, bits = catalogue.network(key), _bits(book)
    encoder_bits = book.ratio("drawing.encoder_bits") or USUAL_BITS
    weights = round(network.params * bits / 8)
    encoders = [round(params * encoder_bits / 8) for _, params in network.encoders]
    told = [
        derived_fact("drawing.model", f"{network.called} ({network.params / 1e9:.1f}B)", f"{network.params:,} parameters"),
        derived_fact("drawing.width", bits, "bits of a weight"),
        derived_fact("drawing.weights", Size.exactly(weights), f"{bits:g} bits * {network.params:,} parameters"),
    ]
    if encoders:
        told.append(derived_fact("drawing.encoder", network.encoders[0][0], key))
        told.append(derived_fact("drawing.encoders", Size.exactly(sum(encoders)), f"{encoder_bits:g} bits a parameter"))
    at_once = _at_once(book, network, weights, encoders)
    if at_once is not None and not _speaks_against(book, at_once):
        told.append(derived_fact("drawing.at_once", Size.exactly(at_once), f"{_offloaded(book)} offload of the pipeline"))
    return told


def _bits(book: FactBook) -> float:
    """Bits of a weight of the network: by its setting, else as the text says, else 16."""
    settings = rule_files.table("denoisers")["of_setting"]
    return settings.get(book.word("model.quantization") or "") or book.ratio("drawing.bits") or USUAL_BITS


def _at_once(book: FactBook, network: Denoiser, weights: int, encoders: list[int]) -> int | None:
    """Bytes of weights that lie on one card at once: of all parts, or of the largest; None where layers come and go or cards share them."""
    shared = book.count("zero.stage") == 3 or book.word("zero.offload_param") in ("cpu", "nvme") or book.word("fsdp.sharding") is not None
    offloaded = _offloaded(book)
    if shared or offloaded == "most" or (book.count("rollout.tensor_parallel") or 1) > 1:
        return None
    vae = network.vae * USUAL_BITS // 8
    return max(weights, *encoders, vae) if offloaded == "part" else network.copies * weights + sum(encoders) + vae


def _offloaded(book: FactBook) -> str:
    """How much of a pipeline leaves the card while it does not work: by a setting, by what the program does, or as the text says."""
    said = {book.word("run.offloads"), book.word("drawing.offload")}
    running, training = book.word("run.program"), {book.word("run.program"), book.word("train.framework")}
    for word, row in rule_files.table("denoisers")["offload"].items():
        of_itself = running in row["programs"] or (book.switch("train.enabled") is True and not training.isdisjoint(row["trainers"]))
        if word in said or of_itself:
            return str(word)
    return "none"


def _speaks_against(book: FactBook, at_once: int) -> bool:
    """Whether less is allocated than the parts take though something was computed: they lie there in fewer bits, or not together."""
    allocated = book.size("log.allocated")
    computed = (book.word("log.phase") or "unknown") not in LOADING
    return allocated is not None and computed and allocated.high < THERE * at_once
