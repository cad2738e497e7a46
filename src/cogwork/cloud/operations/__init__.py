"""Operations of the cloud, and how they run."""
