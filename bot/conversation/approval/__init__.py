"""Waiting for an owner's word: calls of tools, friends and invites; who may say it, and how."""
