"""The rules of Diplomacy: maps, orders, legal orders, adjudication, phases."""
