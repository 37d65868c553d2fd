// Boost's filter for zstd packs and unpacks; we only unpack. These take the place of the packing half of the library.
#include <zstd.h>
#include <zstd_errors.h>

ZSTD_CStream* ZSTD_createCStream(void) { return 0; }
size_t ZSTD_freeCStream(ZSTD_CStream* stream) { return 0; }
size_t ZSTD_initCStream(ZSTD_CStream* stream, int level) { return (size_t)-ZSTD_error_GENERIC; }
size_t ZSTD_compressStream(ZSTD_CStream* stream, ZSTD_outBuffer* out, ZSTD_inBuffer* in) { return (size_t)-ZSTD_error_GENERIC; }
size_t ZSTD_endStream(ZSTD_CStream* stream, ZSTD_outBuffer* out) { return (size_t)-ZSTD_error_GENERIC; }
size_t ZSTD_flushStream(ZSTD_CStream* stream, ZSTD_outBuffer* out) { return (size_t)-ZSTD_error_GENERIC; }
