"""Between Dynamo and the stages: decompositions and corrections of what is captured, graph breaks."""
