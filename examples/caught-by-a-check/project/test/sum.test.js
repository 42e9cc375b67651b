import assert from 'node:assert';
import { test } from 'node:test';
import { sum } from '../src/sum.js';

test('sum adds two numbers', () => assert.equal(sum(2, 2), 4));
