"""Every write to attempts and their journals."""

from upgrades.services.giving_up import attempt_give_up
from upgrades.services.offering import Offer, attempts_offer, attempts_tidy, attempts_withdraw
from upgrades.services.reports import reports_drain

__all__ = ["Offer", "attempt_give_up", "attempts_offer", "attempts_tidy", "attempts_withdraw", "reports_drain"]
