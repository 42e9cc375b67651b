/** One wrong member of a request, as problem documents list it. */
export interface Fault {
  /** `config.mcp_servers.files`; empty: the request as a whole. */
  readonly path: string;
  readonly message: string;
  /** Of a fault in a file, which `path` names. Lines and columns count from 1. */
  readonly line?: number;
  readonly column?: number;
  readonly suggestion?: string;
}
