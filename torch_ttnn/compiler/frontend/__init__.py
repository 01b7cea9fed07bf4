"""Between Dynamo and the stages: decompositions, corrections of captured graphs, graph breaks."""
