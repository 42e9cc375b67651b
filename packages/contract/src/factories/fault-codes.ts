/** Codes of faults, as the public service has them. */
export const faultCodes = [
  'FF_MISSING_FACTORY',
  'FF_UNSUPPORTED_VERSION',
  'FF_UNSUPPORTED_PATH',
  'FF_DUPLICATE_PATH',
  'FF_INVALID_DOCUMENT',
  'FF_MALFORMED_FRONTMATTER',
  'FF_INVALID_YAML',
  'FF_DUPLICATE_KEY',
  'FF_ANCHOR',
  'FF_ALIAS',
  'FF_TAG',
  'FF_UNKNOWN_FIELD',
  'FF_MISSING_REQUIRED',
  'FF_TYPE_MISMATCH',
  'FF_INVALID_VALUE',
  'FF_INVALID_REFERENCE',
  'FF_INVALID_MCP',
  'FF_INVALID_TRIGGER',
  'FF_INVALID_EVENT',
  'FF_INVALID_FILTER',
] as const;
export type FaultCode = (typeof faultCodes)[number];
