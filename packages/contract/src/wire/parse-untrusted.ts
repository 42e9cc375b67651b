import { z } from 'zod';

const message = 'has a member length that cannot be compared with a number, which is not accepted';

/**
 * Checks an untrusted value like `schema.safeParse`, but also refuses the values for which zod throws an error. Zod compares the
 * member `length` of any value with the limits of a text or a list. It throws if `length` is an object whose `toString` is not a
 * function, or a list that is nested too deeply. Errors that a function of the schema throws are not caught.
 */
export function parseUntrusted<T>(
  schema: z.ZodType<T>,
  value: unknown,
  params?: z.core.ParseContext<z.core.$ZodIssue>,
): z.ZodSafeParseResult<T> {
  try {
    return schema.safeParse(value, params);
  } catch (error) {
    const path = error instanceof TypeError || error instanceof RangeError ? pathOfLength(value) : undefined;
    if (path === undefined) throw error;
    return {
      success: false,
      error: new z.ZodError([{ code: 'custom', path, message, input: value }]) as z.ZodError<T>,
    };
  }
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;

/** Returns false for a value that throws when it is converted to a number, such as `[{ toString: 1 }]`. */
function isComparable(value: unknown): boolean {
  try {
    Number(value);
    return true;
  } catch {
    return false;
  }
}

/** A member of a value; `parent` is undefined for the value itself. */
interface Member {
  readonly value: unknown;
  readonly name: string | number;
  readonly parent: Member | undefined;
}

/** Returns the path of an object whose `length` cannot be compared; undefined if there is no such object. */
function pathOfLength(root: unknown): (string | number)[] | undefined {
  // Use a list in place of recursion, because a value may be nested too deeply for the stack.
  const open: Member[] = [{ value: root, name: '', parent: undefined }];
  for (let member = open.pop(); member !== undefined; member = open.pop()) {
    const { value: whole } = member;
    if (!isObject(whole)) continue;
    for (const [name, value] of Object.entries(whole)) {
      if (name === 'length' && !isComparable(value)) return pathTo(member);
      open.push({ value, name: Array.isArray(whole) ? Number(name) : name, parent: member });
    }
  }
  return undefined;
}

function pathTo(member: Member): (string | number)[] {
  const path: (string | number)[] = [];
  for (let each = member; each.parent !== undefined; each = each.parent) path.unshift(each.name);
  return path;
}
