// A shared library that is no plugin.
extern "C" int nothing_of_interest() { return 0; }
