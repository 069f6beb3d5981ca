package x9

// more are the verbs that the plug-in may use.
//
// WRONG: the controller itself may not patch ConfigMaps, and the API server refuses a Role with more
// permissions than its author has. Only users who switch the plug-in on notice this. The bug is taken
// from knative/operator#1158, and was made again in knative/operator#1274.
var more = []string{"get", "list", "watch", "patch"}
