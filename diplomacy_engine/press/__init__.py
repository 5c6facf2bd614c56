"""Deals between powers before they order: offers, binding orders, talk in words."""
