/** First words of the text with which the agent gives its harness a decision that came after the harness had stopped to wait. */
export const decisionOpening = 'You had asked';
