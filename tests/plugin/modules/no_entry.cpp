// A shared library that has nothing to do with millrace.
extern "C" int some_other_symbol() { return 1; }
