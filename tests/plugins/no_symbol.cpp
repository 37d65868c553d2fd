// A shared library that is not a plugin.
extern "C" int nothing_of_interest() { return 0; }
