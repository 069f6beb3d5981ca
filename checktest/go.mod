module github.com/koboshi-dev/koboshi/checktest

go 1.26.0
