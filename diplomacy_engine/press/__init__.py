"""Deals between powers before they order: offers, what is bound by them, talk in words."""
