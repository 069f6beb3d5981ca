package x10

// The repaired twin expects what declaredOrDefault returns, which also determines what the trawler gets.
//
// RIGHT: one function decides, so what is made and what is expected cannot differ.
