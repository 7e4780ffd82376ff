/* SPDX-License-Identifier: BSD-2-Clause */
/* crc.h - CRC-32C (Castagnoli), as iSCSI and ext4 have it. */
#ifndef WEIR_CAPTURE_CRC_H
#define WEIR_CAPTURE_CRC_H

#include <stddef.h>
#include <stdint.h>

/* crc: 0, or what the bytes before came to. */
uint32_t crc__32c(uint32_t crc, const void *bytes, size_t len);

#endif /* WEIR_CAPTURE_CRC_H */
