// This file lets the compiler accept modinfo, a function without a body.
