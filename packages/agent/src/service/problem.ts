interface ProblemMembers {
  title?: string;
  detail?: string;
  error_code?: string;
}

/** Returns the members of a problem document (RFC 7807) that a message needs; undefined if the body is something else. */
export function parseProblem(body: string): ProblemMembers | undefined {
  try {
    const value: unknown = JSON.parse(body);
    if (typeof value !== 'object' || value === null) return undefined;
    const text = (key: string) => {
      const member = (value as Record<string, unknown>)[key];
      return typeof member === 'string' ? { [key]: member } : {};
    };
    return { ...text('title'), ...text('detail'), ...text('error_code') };
  } catch {
    return undefined;
  }
}
