"""Results beside each other: how folders are read (`sides`), shares of a difference (`shares`), the verdict in sentences
(`verdict`), changes from one design to another (`designs`), and what the verb `compare` prints of networks and studies
(`results`)."""
