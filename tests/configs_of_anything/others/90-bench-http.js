export const options = {vus: 50, duration: '2m', batch: 20, thresholds: {http_req_duration: ['p(95)<400']}};
