/** Marks members of requests that the service stores and returns, but that have no effect on this service. */
import type { z } from 'zod';

const marked = new WeakSet<z.core.$ZodType>();

/** Marks the schema of such a member, and returns it. The outermost schema of the member must be marked. */
export function withoutEffect<S extends z.ZodType>(schema: S): S {
  marked.add(schema);
  return schema;
}

/** Returns whether a schema is marked. */
export const isWithoutEffect = (schema: z.core.$ZodType): boolean => marked.has(schema);

/** Returns whether a value asks for something: null, false, an empty text, an empty list and an empty object ask for nothing. */
export function asksForSomething(value: unknown): boolean {
  if (value === null || value === undefined || value === false || value === '') return false;
  return typeof value !== 'object' || Object.values(value).some(asksForSomething);
}
