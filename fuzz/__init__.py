"""Fuzzing: `make fuzz`. README.md says how; `targets` holds what is fuzzed, and needs nothing but Lamina itself."""
