"""Updates of machines: releases, channels and their staged rollouts."""
