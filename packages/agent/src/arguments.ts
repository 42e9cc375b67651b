export interface RunArguments {
  taskId: string;
  /** Without `/api/v1`. */
  serverRoot: string;
  /** Unknown flags, which the agent lists in a warning. */
  unknown: string[];
  /** True: standard input is a pipe from the parent process, and the run ends when the parent ends. */
  stopWithParent: boolean;
  /**
   * Container image that the run needs but cannot get, because its worker starts the agent as a program of the machine and not in a
   * container.
   */
  missingImage?: string;
}

export type ParsedArguments = { ok: true; arguments: RunArguments } | { ok: false; message: string };

/**
 * Flags of the worker protocol that have a value. The agent ignores these flags, because the task that it gets from the service has the
 * same values.
 */
const withValue = new Set(['--share', '--model', '--skill', '--mcp', '--harness', '--environment']);
const withoutValue = new Set(['--sandboxed', '--computer-use', '--no-computer-use']);

/**
 * Parses the arguments of `agent run`. Skips each unknown flag and the word after it, if that word looks like a value. So an older
 * agent also starts with the flags of a newer service.
 */
export function parseRunArguments(
  argv: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): ParsedArguments {
  let taskId = env.TASK_ID;
  let serverRoot = env.WARP_SERVER_ROOT_URL;
  const unknown: string[] = [];
  let stopWithParent = false;
  let image: string | undefined;
  let hasNoImages = false;
  for (let index = 0; index < argv.length; index++) {
    const [flag = '', inline] = splitOnce(argv[index] ?? '');
    const next = argv[index + 1];
    const hasNext = next !== undefined && !next.startsWith('--');
    const value = inline ?? (hasNext ? next : undefined);
    const takesNext = inline === undefined && hasNext;
    if (flag === '--task-id') taskId = value;
    else if (flag === '--server-root-url') serverRoot = value;
    else if (flag === '--docker-image') image = value;
    else if (flag === '--without-images') {
      hasNoImages = true;
      continue;
    } else if (flag === '--stop-with-parent') {
      stopWithParent = true;
      continue;
    } else if (withoutValue.has(flag)) continue;
    // The value of `--idle-on-complete` is optional.
    else if (flag !== '--idle-on-complete' && !withValue.has(flag)) unknown.push(flag);
    if (takesNext) index++;
  }
  if (!taskId) return { ok: false, message: '--task-id (or TASK_ID) is missing' };
  if (!serverRoot) return { ok: false, message: '--server-root-url (or WARP_SERVER_ROOT_URL) is missing' };
  if (!/^https?:$/.test(URL.parse(serverRoot)?.protocol ?? '')) {
    return {
      ok: false,
      message: `--server-root-url must be an http:// or https:// URL (it is ${JSON.stringify(serverRoot)})`,
    };
  }
  const missing = hasNoImages && image !== undefined ? { missingImage: image } : {};
  return {
    ok: true,
    arguments: { taskId, serverRoot: serverRoot.replace(/\/+$/, ''), unknown, stopWithParent, ...missing },
  };
}

function splitOnce(argument: string): [string, string | undefined] {
  const equals = argument.indexOf('=');
  return argument.startsWith('--') && equals !== -1
    ? [argument.slice(0, equals), argument.slice(equals + 1)]
    : [argument, undefined];
}
