/** One wrong member of a request, in the form of problem documents. */
export interface Fault {
  /** `config.mcp_servers.files`; empty: the request as a whole. */
  readonly path: string;
  readonly message: string;
  /** Line in the file that `path` names; absent if the fault is not in a file. Lines and columns count from 1. */
  readonly line?: number;
  readonly column?: number;
  readonly suggestion?: string;
}

/** 403: the request names a thing that does not exist, or that belongs to another team. */
export interface NotUsable {
  readonly kind: 'forbidden';
  readonly detail: string;
  readonly fault: Fault;
}

/**
 * Returns the refusal of a request whose member `path` names a thing that the caller may not use. The answer does not reveal whether the thing
 * exists.
 */
export function notUsable(path: string, thing: string, list: string): NotUsable {
  const message = `there is no such ${thing}, or it belongs to another team. List yours with ${list}`;
  return { kind: 'forbidden', detail: `${path}: ${message}.`, fault: { path, message } };
}
