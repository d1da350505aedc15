"""Negotiation between the batch scheduler and the runtime scheduler (DN-DBES)."""
