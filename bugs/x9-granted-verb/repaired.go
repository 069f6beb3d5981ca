package x9

// held are the verbs that the plug-in may use.
//
// RIGHT: the controller holds all of them.
var held = []string{"get", "list", "watch"}
