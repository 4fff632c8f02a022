// Empty but for this: with an assembly file in the package the compiler accepts dump.go's functions without bodies.
