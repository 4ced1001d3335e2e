"""Stages: what a visit passes through. No stage knows another; `engine` leads each visit from one to the next."""
