/** Whether a text can be a token. One with other characters cannot be sent in a header, and errors would show it. */
export const isToken = (text: string): boolean => /^[\x21-\x7e]+$/.test(text);
