import { z } from 'zod';
import { hostRulePattern, readHostRule } from './host-rules.ts';

const form = 'example.com, *.example.com, 203.0.113.7 or [2001:db8::1], each with or without :port';

/** A rule about hosts in a request. */
export const AllowedHost = z
  .string()
  .max(280)
  .regex(hostRulePattern, { error: `must be ${form}; write international names as xn--…` })
  .refine((text) => !hostRulePattern.test(text) || readHostRule(text) !== undefined, { error: `must be ${form}` });
