"""Ops made of compiled ones, with the checks and errors of those. They move nothing between devices."""
