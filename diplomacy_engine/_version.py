"""The version of the package, which need not be installed."""

VERSION = "0.5.0"
