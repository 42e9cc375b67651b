/** One wrong member of a request, in the form of problem documents. */
export interface Fault {
  /** Path of the wrong member, such as `config.mcp_servers.files`. Empty: the request as a whole is wrong. */
  readonly path: string;
  readonly message: string;
  /** Line in the file that `path` names; absent if the fault is not in a file. Lines and columns count from 1. */
  readonly line?: number;
  readonly column?: number;
  readonly suggestion?: string;
}

/** The refusal of a request that names an object which does not exist or belongs to another team. The status is 403. */
export interface NotUsable {
  readonly kind: 'forbidden';
  readonly detail: string;
  readonly fault: Fault;
}

/**
 * Returns the refusal of a request whose member `path` names an object that the caller may not use. The answer does not reveal whether
 * the object exists.
 */
export function notUsable(path: string, thing: string, list: string): NotUsable {
  const message = `there is no such ${thing}, or it belongs to another team. List yours with ${list}`;
  return { kind: 'forbidden', detail: `${path}: ${message}.`, fault: { path, message } };
}
